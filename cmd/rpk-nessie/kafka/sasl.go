// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	kfFieldSASL           = "sasl"
	kfFieldSASLMechanism  = "mechanism"
	kfFieldSASLUsername   = "username"
	kfFieldSASLPassword   = "password"
	kfFieldSASLToken      = "token"
	kfFieldSASLExtensions = "extensions"
	kfFieldSASLAWS        = "aws"

	mechanismNone        = "none"
	mechanismPlain       = "PLAIN"
	mechanismScram256    = "SCRAM-SHA-256"
	mechanismScram512    = "SCRAM-SHA-512"
	mechanismOAuthBearer = "OAUTHBEARER"
	mechanismAWS         = "AWS_MSK_IAM"
)

func saslField() *service.ConfigField {
	return service.NewObjectListField(kfFieldSASL,
		service.NewStringAnnotatedEnumField(kfFieldSASLMechanism, map[string]string{
			mechanismNone:        "No authentication.",
			mechanismPlain:       "User name and password in plain text: use it with TLS only.",
			mechanismScram256:    "A proof of the password, with SHA-256.",
			mechanismScram512:    "A proof of the password, with SHA-512.",
			mechanismOAuthBearer: "A bearer token.",
			mechanismAWS:         "A request that is signed with AWS's credentials, as Amazon MSK wants it: use it with TLS only.",
		}).Description("How to authenticate."),
		service.NewStringField(kfFieldSASLUsername).
			Description("The user name, for PLAIN and SCRAM.").
			Default(""),
		service.NewStringField(kfFieldSASLPassword).
			Description("The password, for PLAIN and SCRAM.").
			Default("").
			Secret(),
		service.NewStringField(kfFieldSASLToken).
			Description("The token, for OAUTHBEARER. It is sent as it is and not renewed.").
			Default("").
			Secret(),
		service.NewStringMapField(kfFieldSASLExtensions).
			Description("Extensions that go with an OAUTHBEARER token.").
			Optional(),
		awsField(),
	).
		Description("Ways to authenticate, the preferred one first: the first that the broker supports is used.").
		Optional().
		Advanced().
		Example([]any{map[string]any{
			kfFieldSASLMechanism: mechanismScram512, kfFieldSASLUsername: "follower", kfFieldSASLPassword: "${KAFKA_PASSWORD}",
		}})
}

func saslMechanisms(conf *service.ParsedConfig) ([]sasl.Mechanism, error) {
	if !conf.Contains(kfFieldSASL) {
		return nil, nil
	}
	items, err := conf.FieldObjectList(kfFieldSASL)
	if err != nil {
		return nil, err
	}
	var mechanisms []sasl.Mechanism
	for i, item := range items {
		m, err := saslMechanism(item)
		if err != nil {
			return nil, fmt.Errorf("sasl[%d]: %w", i, err)
		}
		if m != nil {
			mechanisms = append(mechanisms, m)
		}
	}
	return mechanisms, nil
}

// saslMechanism is nil for none.
func saslMechanism(item *service.ParsedConfig) (sasl.Mechanism, error) {
	var text [4]string
	for i, name := range []string{kfFieldSASLMechanism, kfFieldSASLUsername, kfFieldSASLPassword, kfFieldSASLToken} {
		var err error
		if text[i], err = item.FieldString(name); err != nil {
			return nil, err
		}
	}
	mechanism, username, password, token := text[0], text[1], text[2], text[3]
	switch mechanism {
	case mechanismNone:
		return nil, nil
	case mechanismPlain, mechanismScram256, mechanismScram512:
		if username == "" {
			return nil, fmt.Errorf("%s needs a username", mechanism)
		}
	case mechanismOAuthBearer:
		if token == "" {
			return nil, fmt.Errorf("%s needs a token", mechanism)
		}
	}
	switch mechanism {
	case mechanismPlain:
		return plain.Auth{User: username, Pass: password}.AsMechanism(), nil
	case mechanismScram256:
		return scram.Auth{User: username, Pass: password}.AsSha256Mechanism(), nil
	case mechanismScram512:
		return scram.Auth{User: username, Pass: password}.AsSha512Mechanism(), nil
	case mechanismOAuthBearer:
		auth := oauth.Auth{Token: token}
		if item.Contains(kfFieldSASLExtensions) {
			var err error
			if auth.Extensions, err = item.FieldStringMap(kfFieldSASLExtensions); err != nil {
				return nil, err
			}
		}
		return auth.AsMechanism(), nil
	case mechanismAWS:
		return awsMechanism(item.Namespace(kfFieldSASLAWS))
	default:
		return nil, fmt.Errorf("unknown mechanism %q: use %s, %s, %s, %s, %s or %s",
			mechanism, mechanismNone, mechanismPlain, mechanismScram256, mechanismScram512, mechanismOAuthBearer, mechanismAWS)
	}
}
