"""PyTorch's own files, as ``torch.save`` writes them: archives of a pickle and storages, and the pickles before 1.6."""
