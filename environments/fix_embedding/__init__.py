"""fix_embedding: a language model whose embedding was damaged, to be made well again."""
