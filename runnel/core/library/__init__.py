"""Names that few programs need: their modules are imported at first use."""
