"""Worker processes of a DataLoader, and the memory that their batches come in."""
