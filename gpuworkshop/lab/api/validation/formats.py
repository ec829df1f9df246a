"""What names, keys, ports and addresses look like: each function says why a text is none, "" if it is one."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"

LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    f"'{_LABEL}')"
)
SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SUBDOMAIN}')"
)
LABEL_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    f"validation is '{_LABEL_1035}')"
)
WILDCARD_WORDS = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
    "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. "
    rf"'*.example.com', regex used for validation is '{_WILDCARD}')"
)
CONFIG_KEY_WORDS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    f"'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
)
PERCENT_WORDS = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
    f"used for validation is '{_PERCENT}')"
)
ENV_WORDS = "a valid environment variable name must consist only of printable ASCII characters other than '='"
ADDRESS_WORDS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
PORT_WORDS = "must be between 1 and 65535, inclusive"

Fault = Callable[[str], str]


def _rule(pattern: str, longest: int, words: str) -> Fault:
    compiled = re.compile(pattern)

    def fault(text: str) -> str:
        if len(text) > longest:
            return f"must be no more than {longest} bytes"
        return "" if compiled.fullmatch(text) else words

    return fault


dns_label = _rule(_LABEL, 63, LABEL_WORDS)
dns_subdomain = _rule(_SUBDOMAIN, 253, SUBDOMAIN_WORDS)
dns_label_1035 = _rule(_LABEL_1035, 63, LABEL_1035_WORDS)
wildcard_subdomain = _rule(_WILDCARD, 253, WILDCARD_WORDS)
_config_key = _rule(_CONFIG_KEY, 253, CONFIG_KEY_WORDS)
percent = _rule(_PERCENT, 253, PERCENT_WORDS)


def path_segment(text: str) -> str:
    """A name that can stand in a URL, and needs no more than that."""
    if text in (".", ".."):
        return f"may not be '{text}'"
    return next((f"may not contain '{mark}'" for mark in "/%" if mark in text), "")


def config_key(text: str) -> str:
    """A key of a ConfigMap or Secret, which is to be the name of a file."""
    if fault := _config_key(text):
        return fault
    if text == ".":
        return "must not be '.'"
    return "must not start with '..'" if text.startswith("..") else ""


def env_name(text: str) -> str:
    """The name of an environment variable."""
    if not all(" " <= mark <= "~" and mark != "=" for mark in text):
        return ENV_WORDS
    return ""


def port_name(text: str) -> str:
    """The name of a port: an IANA service name."""
    if len(text) > 15:
        return "must be no more than 15 bytes"
    if not re.fullmatch("[-a-z0-9]*", text):
        return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", text):
        return "must contain at least one letter (a-z)"
    if "--" in text:
        return "must not contain consecutive hyphens"
    return "must not begin or end with a hyphen" if text.strip("-") != text else ""


def port(value: object) -> str:
    """The number of a port."""
    return "" if type(value) is int and 1 <= value <= 65535 else PORT_WORDS


def port_or_name(value: object) -> str:
    """The number of a port, or the name of one of a container's."""
    return port_name(value) if isinstance(value, str) else port(value)


def ip_address(text: str) -> str:
    """An IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return ADDRESS_WORDS
    return ""


def backsteps(path: str) -> str:
    """A path that does not lead upwards."""
    return "must not contain '..'" if ".." in path.split("/") else ""


def relative_path(path: str) -> str:
    """A path below where it starts."""
    return "must be a relative path" if path.startswith("/") else backsteps(path)
