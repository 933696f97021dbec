// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/awsaccess"
)

const s3FieldPathStyle = "force_path_style_urls"

func init() { register("aws_s3", s3Spec(), newS3) }

func s3Spec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Stable().
		Categories("Services", "AWS").
		Summary("Keeps each item as an object in an S3 bucket, of AWS or of a store that speaks the same language.").
		Description(objectDescription).
		Fields(
			service.NewStringField(fieldBucket).
				Description("The bucket. It has to exist."),
			service.NewStringField(fieldContentType).
				Description("The content type of the objects.").
				Default("application/octet-stream").
				Advanced(),
			service.NewBoolField(s3FieldPathStyle).
				Description("Put the bucket into the path of URLs instead of the host's name, as many stores other than AWS need it.").
				Default(false).
				Advanced(),
			retriesField(time.Second, 5*time.Second, 30*time.Second),
			awsaccess.RegionField("The region. Without this field it comes from the environment."),
			awsaccess.EndpointField("The URL of a store other than AWS.", "http://localhost:9000"),
			awsaccess.CredentialsField(),
		).
		Example("Checkpoints", "The place of an input in a bucket.", `
cache_resources:
  - label: progress
    aws_s3:
      bucket: pipelines
      region: eu-central-1
`)
}

// s3Store is a bucket that speaks S3.
type s3Store struct {
	client      *s3.Client
	http        *awshttp.BuildableClient
	bucket      string
	contentType string
	retries     retries
}

// newS3 does no I/O but reading configuration files.
func newS3(conf *service.ParsedConfig) (*s3Store, error) {
	s := &s3Store{http: awshttp.NewBuildableClient()}
	var err error
	if s.bucket, err = conf.FieldString(fieldBucket); err != nil {
		return nil, err
	}
	if s.contentType, err = conf.FieldString(fieldContentType); err != nil {
		return nil, err
	}
	if s.retries, err = parseRetries(conf); err != nil {
		return nil, err
	}
	pathStyle, err := conf.FieldBool(s3FieldPathStyle)
	if err != nil {
		return nil, err
	}
	settings, err := awsaccess.Parse(conf)
	if err != nil {
		return nil, err
	}
	cfg, err := s.configuration(settings)
	if err != nil {
		return nil, err
	}
	s.client = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = pathStyle
		if settings.Endpoint != "" {
			o.BaseEndpoint = aws.String(settings.Endpoint)
			// Many stores refuse checksums that they do not know.
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
		o.Retryer = aws.NopRetryer{} // retries are ours
	})
	return s, nil
}

func (s *s3Store) configuration(settings awsaccess.Settings) (aws.Config, error) {
	cfg, err := settings.Load(s.http)
	if err != nil {
		return aws.Config{}, err
	}
	if cfg.Region == "" {
		if settings.Endpoint == "" {
			return aws.Config{}, errors.New("no region: set region (or AWS_REGION)")
		}
		cfg.Region = "us-east-1"
	}
	return cfg, nil
}

func (s *s3Store) get(ctx context.Context, name string) (value []byte, err error) {
	err = s.call(ctx, func() error {
		object, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &name})
		if err != nil {
			return err
		}
		value, err = io.ReadAll(object.Body)
		return errors.Join(err, object.Body.Close())
	})
	return value, err
}

func (s *s3Store) put(ctx context.Context, name string, value []byte, ifAbsent bool) error {
	put := func() error {
		input := &s3.PutObjectInput{Bucket: &s.bucket, Key: &name, Body: bytes.NewReader(value), ContentType: &s.contentType}
		if ifAbsent {
			input.IfNoneMatch = aws.String("*")
		}
		_, err := s.client.PutObject(ctx, input)
		return err
	}
	if ifAbsent { // repeated it might meet what it wrote itself
		return s.explain(put())
	}
	return s.call(ctx, put)
}

func (s *s3Store) remove(ctx context.Context, name string) error {
	return s.call(ctx, func() error {
		_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &name})
		return err
	})
}

// call repeats what the SDK takes for a passing failure, and 429, which stores other than AWS answer.
func (s *s3Store) call(ctx context.Context, call func() error) error {
	passing := retry.IsErrorRetryables(append(slices.Clip(retry.DefaultRetryables),
		retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}}}))
	return s.explain(s.retries.do(ctx, func(err error) bool { return passing.IsErrorRetryable(err) != aws.TrueTernary }, call))
}

func (s *s3Store) explain(err error) error {
	failed := new(awshttp.ResponseError)
	if !errors.As(err, &failed) {
		return err
	}
	code := ""
	if api := (interface{ ErrorCode() string })(nil); errors.As(err, &api) {
		code = api.ErrorCode()
	}
	switch status := failed.HTTPStatusCode(); {
	case status == http.StatusNotFound && code == "NoSuchBucket":
		return fmt.Errorf("bucket %q does not exist: %w", s.bucket, err)
	case status == http.StatusNotFound:
		return errNoObject
	case status == http.StatusPreconditionFailed || status == http.StatusConflict:
		return errObjectExists
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		return fmt.Errorf("bucket %q: the credentials lack a permission (s3:GetObject, s3:PutObject, s3:DeleteObject, and s3:ListBucket to tell what is absent): %w", s.bucket, err)
	default:
		return err
	}
}

func (s *s3Store) close() error {
	s.http.GetTransport().CloseIdleConnections()
	return nil
}
