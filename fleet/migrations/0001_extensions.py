"""Exclusion constraints on GPU time compare plain columns beside a range, which needs btree_gist. Before the deploy."""

from django.contrib.postgres.operations import BtreeGistExtension
from django.db import migrations


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [BtreeGistExtension()]
