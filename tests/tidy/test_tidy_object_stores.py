"""The page on object stores agrees with the code: options, errors, policies."""

import json
import re

import pytest
from support.iam import documented
from tidy_repository import ROOT

from tidelog.log.base import errors
from tidelog.log.storage.option_table import BY_NAME

PAGE = (ROOT / "docs/object-stores.md").read_text(encoding="utf-8")


def test_the_options_that_it_names_exist():
    named = set(re.findall(r"lake\.(?:s3|gcs|azure|store)(?:\.[a-z]+)+", PAGE))
    assert named
    assert sorted(named - set(BY_NAME)) == []


def test_the_errors_that_it_names_exist():
    named = set(re.findall(r"`(\w+Error)`", PAGE))
    assert named
    assert [name for name in sorted(named) if not hasattr(errors, name)] == []


@pytest.mark.parametrize("name", documented())
def test_a_policy_names_its_bucket_and_its_lake(name):
    resources = [r for s in json.loads(documented()[name])["Statement"] for r in s["Resource"]]
    assert resources
    assert all(re.fullmatch(r"arn:aws:s3:::BUCKET(/LAKE/.+)?", resource) for resource in resources)
