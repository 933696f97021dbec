// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/sasl"
	msk "github.com/twmb/franz-go/pkg/sasl/aws"

	"github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/awsaccess"
)

func awsField() *service.ConfigField {
	return service.NewObjectField(kfFieldSASLAWS,
		awsaccess.RegionField("The region of the service that issues the credentials. Without this field it comes from the environment. The brokers' region is read "+
			"from their host names; where those are not of AWS, the environment variable `AWS_REGION` has to say it."),
		awsaccess.EndpointField("The URL of a service other than AWS's that lets a role be assumed.", "http://localhost:4566"),
		awsaccess.CredentialsField(),
	).Description("Who asks, for " + mechanismAWS + ".").Optional().Advanced()
}

// awsMechanism signs each session anew with what the credentials are by then: those of a role are renewed before they expire.
func awsMechanism(conf *service.ParsedConfig) (sasl.Mechanism, error) {
	settings, err := awsaccess.Parse(conf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kfFieldSASLAWS, err)
	}
	settings.STSEndpoint = settings.Endpoint
	// Credentials are asked for so rarely that no connection is kept for them.
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
	cfg, err := settings.Load(client)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kfFieldSASLAWS, err)
	}
	return mskIAM{msk.ManagedStreamingIAM(func(ctx context.Context) (msk.Auth, error) {
		found, err := cfg.Credentials.Retrieve(ctx)
		if err != nil {
			return msk.Auth{}, fmt.Errorf("finding AWS's credentials: %w", err)
		}
		return msk.Auth{AccessKey: found.AccessKeyID, SecretKey: found.SecretAccessKey, SessionToken: found.SessionToken}, nil
	})}, nil
}

// mskIAM says what to do where the region that a request is signed for can't be found.
type mskIAM struct{ sasl.Mechanism }

// Authenticate implements sasl.Mechanism. The library has no type for the error, and names the broker.
func (m mskIAM) Authenticate(ctx context.Context, broker string) (sasl.Session, []byte, error) {
	session, first, err := m.Mechanism.Authenticate(ctx, broker)
	if err != nil && strings.Contains(err.Error(), "cannot determine the region") {
		err = fmt.Errorf("%w, which is no host name of AWS: set the environment variable AWS_REGION to the brokers' region (aws.region is that of the credentials)", err)
	}
	return session, first, err
}
