"""The stores that Spark writes its logs of offsets and commits to: a local disk, or a bucket by Hadoop's `s3a`."""
