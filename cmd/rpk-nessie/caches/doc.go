// SPDX-License-Identifier: Apache-2.0

// Package caches registers caches that keep items outside the process: redis, aws_s3, gcp_cloud_storage and
// azure_blob_storage. Fields have the names and meanings that users of Redpanda Connect know.
package caches
