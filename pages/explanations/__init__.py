"""The formula of a cell, links to Look inside, and the sentences of the page Masks."""
