#!/usr/bin/python3
"""The program by which a deployed machine reports its hardware to the simulated region.

Usage: maas-run-scripts report-results --config FILE

Signs with the machine's own token, fetches the scripts, and reports one result. Needs PyYAML, as a region's own does.
"""
import argparse
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml


def authorization(credentials):
    secret = urllib.parse.quote(credentials["token_secret"], safe="")
    fields = {
        "oauth_version": "1.0",
        "oauth_signature_method": "PLAINTEXT",
        "oauth_consumer_key": credentials["consumer_key"],
        "oauth_token": credentials["token_key"],
        "oauth_signature": urllib.parse.quote("&" + secret, safe=""),
        "oauth_timestamp": str(int(time.time())),
        "oauth_nonce": secrets.token_hex(16),
    }
    return "OAuth " + ", ".join(f'{name}="{value}"' for name, value in fields.items())


def ask(url, credentials, body=None, content_type=None):
    request = urllib.request.Request(url, data=body)
    request.add_header("Authorization", authorization(credentials))
    if content_type:
        request.add_header("Content-Type", content_type)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def multipart(fields):
    line = secrets.token_hex(16)
    parts = [f'--{line}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields]
    return "".join([*parts, f"--{line}--\r\n"]).encode(), f"multipart/form-data; boundary={line}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["report-results"])
    parser.add_argument("--config", required=True)
    arguments = parser.parse_args()
    with open(arguments.config, encoding="utf-8") as file:
        credentials = yaml.safe_load(file)["reporting"]["maas"]
    split = urllib.parse.urlsplit(credentials["endpoint"])
    metadata = f"{split.scheme}://{split.netloc}/MAAS/metadata/2012-03-01/"
    try:
        ask(metadata + "maas-scripts", credentials)
        body, content_type = multipart(
            [("op", "signal"), ("status", "WORKING"), ("20-maas-03-machine-resources", "{}")]
        )
        ask(metadata, credentials, body, content_type)
    except urllib.error.HTTPError as error:
        # The body of a refusal may contain the token's secret.
        sys.exit(f"{split.netloc} answered {error.code}")


main()
