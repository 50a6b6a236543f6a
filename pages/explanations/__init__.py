"""The pages Look inside and Masks: stages of a forward pass."""
