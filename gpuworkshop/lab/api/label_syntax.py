"""What a label's key and value may look like, and the words for one that is wrong."""

from __future__ import annotations

import re

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LONGEST_NAME, LONGEST_PREFIX = 63, 253


def key_fault(key: str) -> str:
    """Why `key` is no label key, "" if it is one."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (
            "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and "
            "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
            "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix "
            "and '/' (e.g. 'example.com/MyName')"
        )
    if slash and not prefix:
        return "prefix part must be non-empty"
    if len(prefix) > LONGEST_PREFIX:
        return f"prefix part must be no more than {LONGEST_PREFIX} bytes"
    if prefix and not _SUBDOMAIN.fullmatch(prefix):
        return (
            "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "
            r"used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
    if not name:
        return "name part must be non-empty"
    if len(name) > LONGEST_NAME:
        return f"name part must be no more than {LONGEST_NAME} bytes"
    if not _NAME.fullmatch(name):
        return (
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
            "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
            "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        )
    return ""


def value_fault(value: str) -> str:
    """Why `value` is no label value, "" if it is one."""
    if len(value) > LONGEST_NAME:
        return f"must be no more than {LONGEST_NAME} bytes"
    if value and not _NAME.fullmatch(value):
        return (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
            "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        )
    return ""
