// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// S3Config says which S3 is asked, and as whom. What is unset comes from where AWS's SDKs look: environment, shared
// configuration files, the machine's role.
type S3Config struct {
	// Region is needed by AWS itself; with an Endpoint it defaults to us-east-1.
	Region string
	// Endpoint is the URL of an S3 compatible store; "" is AWS.
	Endpoint string
	// ForcePathStyle puts the bucket into the path. It is also done for an endpoint whose host can't carry a bucket in
	// front: an address, localhost, a name without a dot.
	ForcePathStyle bool

	AccessKeyID, SecretAccessKey, SessionToken string
	// Profile is a profile of the shared configuration files.
	Profile string
	// FromEC2Role takes the credentials of the machine's instance profile.
	FromEC2Role bool
	// Role is the ARN of a role to assume with the credentials above; RoleExternalID goes with it.
	Role, RoleExternalID string

	// MaxAttempts is how often a request is made at most; 0 is the SDK's default (3, or AWS_MAX_ATTEMPTS).
	MaxAttempts int
}

func (c S3Config) check() error {
	switch {
	case (c.AccessKeyID == "") != (c.SecretAccessKey == ""):
		return errors.New("storage.aws_s3.credentials: id and secret go together")
	case c.SessionToken != "" && c.AccessKeyID == "":
		return errors.New("storage.aws_s3.credentials: token needs id and secret")
	case c.FromEC2Role && c.AccessKeyID != "":
		return errors.New("storage.aws_s3.credentials: from_ec2_role and id exclude each other")
	case c.RoleExternalID != "" && c.Role == "":
		return errors.New("storage.aws_s3.credentials: role_external_id needs role")
	case c.Endpoint == "":
		return nil
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("storage.aws_s3.endpoint: not an http or https URL")
	}
	if u.User != nil {
		return errors.New("storage.aws_s3.endpoint: user information belongs into storage.aws_s3.credentials")
	}
	return nil
}

// pathStyle reports whether the bucket goes into the path.
func (c S3Config) pathStyle() bool {
	if c.ForcePathStyle || c.Endpoint == "" {
		return c.ForcePathStyle
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return true
	}
	host := u.Hostname()
	return net.ParseIP(host) != nil || !strings.Contains(host, ".")
}

// s3Client makes the one client of a Storage when it is first needed.
type s3Client struct {
	cfg     S3Config
	timeout time.Duration // of which a connection may deliver nothing
	retried func(location string, err error)

	mu       sync.Mutex                // held while the client is made
	client   atomic.Pointer[s3.Client] // nil: not made yet
	patterns s3Patterns
	idle     interface{ CloseIdleConnections() }
}

// get answers the client. Credentials that it fetches later are not bound to ctx, which belongs to the first caller.
func (c *s3Client) get(ctx context.Context) (*s3.Client, error) {
	if client := c.client.Load(); client != nil {
		return client, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if client := c.client.Load(); client != nil {
		return client, nil
	}
	cfg, err := c.load(context.WithoutCancel(ctx))
	if err != nil {
		return nil, fmt.Errorf("configuring S3: %w", err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = c.cfg.pathStyle()
		if c.cfg.Endpoint != "" {
			o.BaseEndpoint = aws.String(c.cfg.Endpoint)
		}
		// Checksums cover whole objects only, and most reads are of ranges.
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		c.patterns.use(o)
	})
	c.client.Store(client)
	return client, nil
}

// toldRetryer tells of each attempt that is made again.
type toldRetryer struct {
	aws.RetryerV2
	retried func(err error)
}

func (r toldRetryer) RetryDelay(attempt int, err error) (time.Duration, error) {
	delay, noDelay := r.RetryerV2.RetryDelay(attempt, err)
	if noDelay == nil {
		r.retried(err)
	}
	return delay, noDelay
}

func (c *s3Client) retryer() aws.Retryer {
	return toldRetryer{
		RetryerV2: retry.NewStandard(func(o *retry.StandardOptions) {
			if c.cfg.MaxAttempts > 0 {
				o.MaxAttempts = c.cfg.MaxAttempts
			}
		}),
		retried: func(err error) { c.retried("", c.explain(err)) },
	}
}

func (c *s3Client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle != nil {
		c.idle.CloseIdleConnections()
	}
}

func (c *s3Client) load(ctx context.Context) (aws.Config, error) {
	options := []func(*config.LoadOptions) error{config.WithHTTPClient(s3HTTPClient(c.timeout)), config.WithRetryer(c.retryer)}
	if c.cfg.Region != "" {
		options = append(options, config.WithRegion(c.cfg.Region))
	}
	if c.cfg.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(c.cfg.Profile))
	}
	if c.cfg.AccessKeyID != "" {
		options = append(options, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(c.cfg.AccessKeyID, c.cfg.SecretAccessKey, c.cfg.SessionToken)))
	} else if c.cfg.FromEC2Role {
		options = append(options, config.WithCredentialsProvider(aws.NewCredentialsCache(ec2rolecreds.New())))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, err
	}
	if cfg.Region == "" {
		if c.cfg.Endpoint == "" {
			return aws.Config{}, errors.New("no region: set storage.aws_s3.region (or AWS_REGION)")
		}
		cfg.Region = "us-east-1"
	}
	// Loading may have put certificates into the client (AWS_CA_BUNDLE); frozen, its connections can be closed.
	if buildable, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		cfg.HTTPClient = buildable.Freeze()
	}
	c.idle, _ = cfg.HTTPClient.(interface{ CloseIdleConnections() })
	if c.cfg.Role != "" {
		assume := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), c.cfg.Role, func(o *stscreds.AssumeRoleOptions) {
			if c.cfg.RoleExternalID != "" {
				o.ExternalID = aws.String(c.cfg.RoleExternalID)
			}
		})
		cfg.Credentials = aws.NewCredentialsCache(assume)
	}
	return cfg, nil
}

// s3HTTPClient keeps as many connections as readers may want at once, and gives up on one that delivers nothing.
func s3HTTPClient(timeout time.Duration) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns = 256
			t.MaxIdleConnsPerHost = 256
			t.IdleConnTimeout = 90 * time.Second
		}).
		WithReadTimeout(timeout)
}
