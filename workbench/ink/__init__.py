"""What every paper is written with: figures, words and lines, said once for the screen, the terminal and the page."""
