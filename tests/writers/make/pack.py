# SPDX-License-Identifier: Apache-2.0
"""Packs the objects of the tables whose locations the file roots of a folder lists, which the makers of flink, java and
python leave beside their cases.json, as files.tar.gz there.

    pip install boto3
    S3=http://127.0.0.1:9000 python pack.py ../testdata/flink    # key k, secret s
"""

import io
import os
import pathlib
import sys
import tarfile

import boto3

folder = pathlib.Path(sys.argv[1])
s3 = boto3.client("s3", endpoint_url=os.environ["S3"], region_name="us-east-1", aws_access_key_id="k", aws_secret_access_key="s")
with tarfile.open(folder / "files.tar.gz", mode="w:gz") as tar:
    for root in (folder / "roots").read_text().split():
        bucket, prefix = root.removeprefix("s3://").split("/", 1)
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix + "/"):
            for found in page["Contents"]:
                data = s3.get_object(Bucket=bucket, Key=found["Key"])["Body"].read()
                entry = tarfile.TarInfo(found["Key"])
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
(folder / "roots").unlink()
