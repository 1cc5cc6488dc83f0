from routing.models.keys import ApiKey

__all__ = ["ApiKey"]
