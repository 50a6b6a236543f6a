"""Code that all pages share: session, selection, ownership, wording, style."""
