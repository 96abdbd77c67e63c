"""Elections inside other people's tools, one file for each; nothing of the package imports them."""
