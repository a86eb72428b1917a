"""The research environments and the contract by which the engine knows them."""
