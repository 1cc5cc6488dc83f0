"""Forms check shape only; services decide. What a service refuses is put beside the field that it names."""

from __future__ import annotations

from django import forms
from django.forms.renderers import DjangoTemplates

from portal.kernel.errors import SlipwayError


class ShapeForm(forms.Form):
    """A form whose controls carry the house style, and which can show a service's refusal."""

    default_renderer = DjangoTemplates
    required_css_class = "required"

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            widget = field.widget
            if isinstance(widget, forms.CheckboxInput | forms.RadioSelect | forms.CheckboxSelectMultiple):
                style = "form-check-input"
            elif isinstance(widget, forms.Select):
                style = "form-select"
            else:
                style = "form-control"
            widget.attrs["class"] = f"{widget.attrs.get('class', '')} {style}".strip()
            if field.help_text:
                widget.attrs["aria-describedby"] = f"{self.auto_id % name}_help"

    def refuse(self, error: SlipwayError) -> None:
        """Show ``error``: each message at its field, and those of no field of this form above it."""
        placed = False
        for name, messages in error.fields.items():
            for message in messages:
                if name in self.fields:
                    self.add_error(name, message)
                    placed = True
                else:
                    self.add_error(None, f"{name.replace('_', ' ')}: {message}")
                    placed = True
        if not placed:
            self.add_error(None, error.detail)
        for name in self.errors:
            if name in self.fields:
                attrs = self.fields[name].widget.attrs
                attrs["class"] = f"{attrs.get('class', '')} is-invalid"
                attrs["aria-invalid"] = "true"


def whole(text: str) -> int | None:
    """A form's hidden version, or None when it is missing or no number (then no version is compared)."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
