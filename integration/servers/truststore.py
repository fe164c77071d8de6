"""The certificates that this machine trusts, as a file that Java reads.

A Java from pip brings certificates of its own and knows nothing of those that were added to
the machine, such as that of a company's proxy; what pip can reach, it then cannot.
"""

import hashlib
import os
import pathlib
import re
import ssl
import struct
import time


def write(path):
    """Writes the trust store; False if no certificates were found, and nothing was written."""
    certificates = machine_certificates()
    if certificates:
        path.write_bytes(jks(certificates))
    return bool(certificates)


def machine_certificates():
    """In DER form, from the file or the folder that OpenSSL takes them from."""
    places = ssl.get_default_verify_paths()  # with SSL_CERT_FILE and SSL_CERT_DIR
    if places.cafile:
        files = [places.cafile]
    else:
        files = [entry for entry in os.scandir(places.capath) if entry.is_file()] if places.capath else []
    found = {}
    for file in files:
        text = pathlib.Path(file).read_text(encoding="ascii", errors="ignore")
        for block in re.findall("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", text, re.DOTALL):
            found[ssl.PEM_cert_to_DER_cert(block)] = None
    return list(found)


def jks(certificates):
    """Java's own format: a header, one entry for each certificate, and a digest."""
    now = int(time.time() * 1000)
    store = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, der in enumerate(certificates):
        store += struct.pack(">I", 2) + text(str(number)) + struct.pack(">Q", now)
        store += text("X.509") + struct.pack(">I", len(der)) + der
    return store + hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + store).digest()


def text(value):
    return struct.pack(">H", len(value)) + value.encode("ascii")
