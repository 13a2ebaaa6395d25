"""Sorting, order statistics, sets and histograms."""
