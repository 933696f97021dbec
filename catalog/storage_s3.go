// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// s3Store holds the objects of any bucket. It talks to the SDK's client itself, not through a file abstraction over it:
// keys stay raw (such layers escape or refuse some), opening fetches no more than is used, and contexts count.
type s3Store struct{ client *s3Client }

// splitS3 takes s3://bucket/key apart.
func splitS3(location string) (base, bucket, key string) {
	scheme, rest, _ := strings.Cut(location, "://")
	bucket, key, _ = strings.Cut(rest, "/")
	return scheme + "://" + bucket + "/", bucket, key
}

func (s s3Store) get(ctx context.Context, location, rng string) (part, error) {
	client, err := s.client.get(ctx)
	if err != nil {
		return part{}, err
	}
	_, bucket, key := splitS3(location)
	g := &s3Get{bucket: bucket, key: key, rng: rng}
	if answer := s.client.patterns.get(ctx, g); answer != nil { //nolint:bodyclose // the part's owner does
		return partOf(answer)
	}
	defer g.drop()
	in := &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)}
	if rng != "" {
		in.Range = aws.String(rng)
	}
	out, err := client.GetObject(g.within(ctx), in)
	if err != nil {
		return part{}, s.client.explain(err)
	}
	p := part{body: out.Body, modified: aws.ToTime(out.LastModified)}
	return p.as(out.ContentLength, aws.ToString(out.ContentRange))
}

// partOf is the part that an answer to a request by a pattern holds.
func partOf(answer *http.Response) (part, error) {
	p := part{body: answer.Body}
	// A date that nobody can read is as good as none: it is only shown.
	p.modified, _ = http.ParseTime(answer.Header.Get("Last-Modified"))
	return p.as(&answer.ContentLength, answer.Header.Get("Content-Range"))
}

func (s s3Store) stat(ctx context.Context, location string) (fs.FileInfo, error) {
	client, err := s.client.get(ctx)
	if err != nil {
		return nil, err
	}
	_, bucket, key := splitS3(location)
	out, err := client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)})
	if err != nil {
		return nil, s.client.explain(err)
	}
	return objectInfo{name: baseName(location), size: aws.ToInt64(out.ContentLength), modified: aws.ToTime(out.LastModified)}, nil
}

func (s s3Store) list(ctx context.Context, prefix string) ([]string, error) {
	client, err := s.client.get(ctx)
	if err != nil {
		return nil, err
	}
	base, bucket, key := splitS3(prefix)
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(key)})
	var locations []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.client.explain(err)
		}
		for _, found := range page.Contents {
			locations = append(locations, base+aws.ToString(found.Key))
		}
	}
	return locations, nil
}

// explain makes what S3 answered an error that callers can decide on, and names the endpoint. A bucket that does not
// exist is deliberately no fs.ErrNotExist: that would make every file of every table look expired.
func (c *s3Client) explain(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return fmt.Errorf("S3 at %s: %w", c.where(), err)
	}
	var answer interface{ HTTPStatusCode() int }
	status := 0
	if errors.As(err, &answer) {
		status = answer.HTTPStatusCode()
	}
	switch api.ErrorCode() {
	case "NoSuchKey", "NotFound":
		return fs.ErrNotExist
	case "InvalidRange":
		return errRange
	case "AccessDenied", "Forbidden":
		// S3 answers the same for an object that is not there when listing the bucket is not allowed.
		return fmt.Errorf("%w by S3 at %s: %w", fs.ErrPermission, c.where(), err)
	case "NotImplemented", "MethodNotAllowed":
		return fmt.Errorf("%w by S3 at %s: %w", errors.ErrUnsupported, c.where(), err)
	}
	if status == http.StatusRequestedRangeNotSatisfiable {
		return errRange
	}
	return fmt.Errorf("S3 at %s: %w", c.where(), err)
}

// where names the endpoint for errors.
func (c *s3Client) where() string {
	if c.cfg.Endpoint != "" {
		return c.cfg.Endpoint
	}
	return "AWS"
}
