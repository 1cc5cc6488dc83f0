"""The REST door, shared by every floor above: who calls, one error shape, pages, preconditions, idempotency.

It sits on the tenancy floor because it must know tokens and actors, and everything above it answers through it.
"""
