// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// s3Files reads objects of any bucket. It talks to the SDK's client itself, not through a file abstraction over it:
// keys stay raw (such layers escape or refuse some), opening fetches no more than is used, and contexts count.
type s3Files struct {
	client *s3Client
	count  func(int64)
}

// splitS3 takes s3://bucket/key apart.
func splitS3(location string) (base, bucket, key string) {
	scheme, rest, _ := strings.Cut(location, "://")
	bucket, key, _ = strings.Cut(rest, "/")
	return scheme + "://" + bucket + "/", bucket, key
}

// get asks for a piece of the object, rng being the value of a Range header, "" for all of it.
func (s *s3Files) get(ctx context.Context, location, rng string) (part, error) {
	client, err := s.client.get(ctx)
	if err != nil {
		return part{}, err
	}
	_, bucket, key := splitS3(location)
	in := &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)}
	if rng != "" {
		in.Range = aws.String(rng)
	}
	out, err := client.GetObject(ctx, in)
	if err != nil {
		return part{}, s.client.explain(err)
	}
	p := part{body: out.Body, n: aws.ToInt64(out.ContentLength), size: aws.ToInt64(out.ContentLength), modified: aws.ToTime(out.LastModified)}
	if out.ContentRange != nil {
		if p.off, p.size, err = parseContentRange(*out.ContentRange); err != nil {
			return part{}, errors.Join(err, out.Body.Close())
		}
	}
	return p, nil
}

// parseContentRange reads "bytes 5-9/20" (RFC 9110, section 14.4).
func parseContentRange(text string) (off, size int64, err error) {
	span, total, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	first, _, ok2 := strings.Cut(span, "-")
	if ok && ok2 {
		off, err = strconv.ParseInt(first, 10, 64)
		if err == nil {
			size, err = strconv.ParseInt(total, 10, 64)
		}
	}
	if !ok || !ok2 || err != nil {
		return 0, 0, fmt.Errorf("the store answered the Content-Range %q", text)
	}
	return off, size, nil
}

// open asks for the file's tail if its readers start there, else for all of it.
func (s *s3Files) open(ctx context.Context, location string) (iceio.File, error) {
	rng := ""
	if readFromTheEnd(location) {
		rng = "bytes=-" + strconv.Itoa(tailBytes)
	}
	p, err := s.get(ctx, location, rng)
	if errors.Is(err, errRange) {
		// Nothing to take a tail of: the object is empty, or the store refuses a tail longer than the object.
		p, err = s.get(ctx, location, "")
	}
	if err != nil {
		return nil, err
	}
	o := &object{
		ctx: ctx, location: location, size: p.size, modified: p.modified, count: s.count,
		get: func(ctx context.Context, off, n int64) (part, error) {
			return s.get(ctx, location, fmt.Sprintf("bytes=%d-%d", off, off+n-1))
		},
	}
	body := o.between(p.off, p.off+p.n, p.body)
	if !readFromTheEnd(location) || p.n > tailBytes {
		o.stream = body
		return o, nil
	}
	o.tail = make([]byte, p.n)
	_, err = io.ReadFull(body, o.tail)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	return o, nil
}

func (s *s3Files) prefix(ctx context.Context, location string, n int64) ([]byte, error) {
	rng := ""
	if n >= 0 {
		rng = fmt.Sprintf("bytes=0-%d", n-1)
	}
	p, err := s.get(ctx, location, rng)
	if errors.Is(err, errRange) {
		return nil, nil // the object is empty
	}
	if err != nil {
		return nil, err
	}
	end := p.n
	if n >= 0 {
		end = min(end, n)
	}
	body := (&object{
		ctx: ctx, location: location, count: s.count,
		get: func(ctx context.Context, off, n int64) (part, error) {
			return s.get(ctx, location, fmt.Sprintf("bytes=%d-%d", off, off+n-1))
		},
	}).between(0, end, p.body)
	var buf bytes.Buffer
	buf.Grow(int(end) + bytes.MinRead)
	_, err = buf.ReadFrom(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func (s *s3Files) stat(ctx context.Context, location string) (fs.FileInfo, error) {
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

func (s *s3Files) list(ctx context.Context, prefix string) ([]string, error) {
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

// errRange says that the asked range lies outside the object.
var errRange = errors.New("range lies outside the object")

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

const (
	// connectTimeout bounds connecting, readTimeout how long a connection may deliver nothing at all.
	connectTimeout = 10 * time.Second
	readTimeout    = 60 * time.Second
)
