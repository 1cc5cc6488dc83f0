"""Fixtures every test may use. The standing cast lives in tests/cast.py, the real cluster in tests/cluster.py."""
