"""Secrets that every program of the run could tell, and that must be found in nothing that it writes.

The run's environment holds a token and names a key file (conftest.py), so whatever prints its environment, its credentials or what it sends is
noticed: by harness.run_headrace in what a program prints, and at the end in every small file below pytest's directory.
"""

import datetime
import functools
import json

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

TOKEN = "ya29.canary-token-c4n4ry-0123456789"
TOKEN_PREFIX = "ya29.canary-"  # of the tokens that tests' token servers make
CLIENT_SECRET = "GOCSPX-c4n4ry-client-secret"
REFRESH_TOKEN = "1//c4n4ry-refresh-token"
KEY_ID = "c4n4ry-key-id"
# The beginning of every signed assertion, {"alg":"R, in base64url.
ASSERTION_PREFIX = "eyJhbGciOiJS"
TOKEN_VARIABLE = "HEADRACE_TEST_TOKEN"
# Files that hold a canary by right: what tests give to the program.
OWN_SUFFIX = ".canary"
_LARGEST_FILE = 4 << 20


@functools.cache
def key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@functools.cache
def key_pem():
    return key().private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


@functools.cache
def canaries():
    """As bytes. All lines of the key but the first, which is the same for every key."""
    lines = [line for line in key_pem().splitlines() if not line.startswith("-----")][1:]
    return tuple(word.encode() for word in (TOKEN_PREFIX, CLIENT_SECRET, REFRESH_TOKEN, KEY_ID, ASSERTION_PREFIX, *lines))


def found_in(text):
    """The canaries in a text or in bytes, as they should be shown: never whole."""
    data = text.encode() if isinstance(text, str) else text
    return [word[:12].decode() + "..." for word in canaries() if word in data]


def found_below(directory):
    """[(path, canary)] of all files up to 4 MiB, without those that the tests themselves put secrets into."""
    found = []
    for path in sorted(directory.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.suffix == OWN_SUFFIX or path.stat().st_size > _LARGEST_FILE:
            continue
        found += [(str(path), word) for word in found_in(path.read_bytes())]
    return found


def service_account(token_uri=None):
    """The content of a key file."""
    file = {"type": "service_account", "project_id": "p", "private_key": key_pem(), "private_key_id": KEY_ID, "client_email": "reader@p.iam.example", "client_id": "2"}
    return json.dumps(file | ({"token_uri": token_uri} if token_uri else {}))


def authorized_user(token_uri):
    return json.dumps({"type": "authorized_user", "client_id": "id.example", "client_secret": CLIENT_SECRET, "refresh_token": REFRESH_TOKEN, "token_uri": token_uri})


def write_own(directory, name, content):
    """A file of the tests' own, which may hold secrets."""
    path = directory / (name + OWN_SUFFIX)
    path.write_text(content)
    return path


@functools.cache
def certificate_pem():
    """For 127.0.0.1, signed by its own key: it is also the bundle that trusts it."""
    import ipaddress

    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(name, name, key().public_key(), x509.random_serial_number(), now - datetime.timedelta(hours=1), now + datetime.timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]), critical=False)
    return builder.sign(key(), hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
