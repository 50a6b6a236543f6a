"""The runs of a visitor: listing, opening, sharing and exporting them."""
