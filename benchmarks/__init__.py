"""What the README claims, measured."""
