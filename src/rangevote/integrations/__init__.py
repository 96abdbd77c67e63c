"""Elections inside other tools, one module for each; the rest of the package does not import them."""
