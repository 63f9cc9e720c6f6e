"""Running jobs that can be watched and rescaled: each implements `penstock.core.Target`."""
