"""Measurements as ratios, side by side in one run. Never tests."""
