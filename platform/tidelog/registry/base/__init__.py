"""What all kinds of schemas share: references, identity, JSON text, comparison, errors."""
