"""What all kinds of schemas share: their model, comparisons, bounds, and the prefix by which values name them."""
