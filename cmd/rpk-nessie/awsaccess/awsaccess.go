// SPDX-License-Identifier: Apache-2.0

// Package awsaccess is who asks AWS: the fields region, endpoint and credentials, with the names and meanings that users of
// Redpanda Connect know, and what they make of the SDK's configuration.
package awsaccess

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	fieldRegion      = "region"
	fieldEndpoint    = "endpoint"
	fieldCredentials = "credentials"
	fieldProfile     = "profile"
	fieldID          = "id"
	fieldSecret      = "secret"
	fieldToken       = "token"
	fieldFromEC2     = "from_ec2_role"
	fieldRole        = "role"
	fieldExternalID  = "role_external_id"
)

// RegionField is the region; description says of what.
func RegionField(description string) *service.ConfigField {
	return service.NewStringField(fieldRegion).Description(description).Optional().Advanced()
}

// EndpointField is a URL other than that of AWS; description says of what.
func EndpointField(description, example string) *service.ConfigField {
	return service.NewStringField(fieldEndpoint).Description(description).Optional().Advanced().Example(example)
}

// CredentialsField is who asks.
func CredentialsField() *service.ConfigField {
	return service.NewObjectField(fieldCredentials,
		service.NewStringField(fieldProfile).Description("A profile of the shared configuration files.").Optional().Advanced(),
		service.NewStringField(fieldID).Description("The access key's id.").Optional().Advanced(),
		service.NewStringField(fieldSecret).Description("The access key's secret.").Optional().Advanced().Secret(),
		service.NewStringField(fieldToken).Description("The session token of temporary credentials.").Optional().Advanced().Secret(),
		service.NewBoolField(fieldFromEC2).Description("Take the credentials of the machine's role.").Optional().Advanced(),
		service.NewStringField(fieldRole).Description("The ARN of a role to assume.").Optional().Advanced(),
		service.NewStringField(fieldExternalID).Description("The external id to give when the role is assumed.").Optional().Advanced(),
	).Description("Who asks. Without it the environment, shared configuration files and the machine's role are tried.").Optional().Advanced().LintRule(contradictions)
}

// contradictions looks at which fields are there: a variable that is not set leaves them empty.
const contradictions = `root = match {
  this.exists("id") != this.exists("secret") => [ "id and secret go together" ],
  this.exists("id") && this.from_ec2_role.or(false) == true => [ "id and from_ec2_role exclude each other" ],
  this.exists("role_external_id") && !this.exists("role") => [ "role_external_id needs a role" ],
}`

// Settings are the fields' values. The zero value is what the environment, shared files and the machine's role say.
type Settings struct {
	// Region is "" where it comes from the environment or a shared file.
	Region string
	// Endpoint is not applied by Load.
	Endpoint string
	// STSEndpoint is the URL that is asked to assume the role; "" is that of AWS.
	STSEndpoint string

	profile, id, secret, token, role, externalID string
	fromEC2                                      bool
}

// Parse refuses fields that contradict each other. It does no I/O.
func Parse(conf *service.ParsedConfig) (Settings, error) {
	var s Settings
	for _, f := range []struct {
		value *string
		path  []string
	}{
		{&s.Region, []string{fieldRegion}},
		{&s.Endpoint, []string{fieldEndpoint}},
		{&s.profile, []string{fieldCredentials, fieldProfile}},
		{&s.id, []string{fieldCredentials, fieldID}},
		{&s.secret, []string{fieldCredentials, fieldSecret}},
		{&s.token, []string{fieldCredentials, fieldToken}},
		{&s.role, []string{fieldCredentials, fieldRole}},
		{&s.externalID, []string{fieldCredentials, fieldExternalID}},
	} {
		if !conf.Contains(f.path...) {
			continue
		}
		var err error
		if *f.value, err = conf.FieldString(f.path...); err != nil {
			return Settings{}, err
		}
	}
	if conf.Contains(fieldCredentials, fieldFromEC2) {
		var err error
		if s.fromEC2, err = conf.FieldBool(fieldCredentials, fieldFromEC2); err != nil {
			return Settings{}, err
		}
	}
	switch {
	case (s.id == "") != (s.secret == ""):
		return Settings{}, errors.New("credentials: id and secret go together")
	case s.id != "" && s.fromEC2:
		return Settings{}, errors.New("credentials: id and from_ec2_role exclude each other")
	case s.externalID != "" && s.role == "":
		return Settings{}, errors.New("credentials: role_external_id needs a role")
	}
	return s, nil
}

// Load reads shared configuration files, and asks nobody: credentials are fetched when they are used. The configuration's
// region is "" where neither the settings nor the environment say one; client sends the requests for credentials too.
func (s Settings) Load(client config.HTTPClient) (aws.Config, error) {
	options := []func(*config.LoadOptions) error{config.WithHTTPClient(client)}
	if s.Region != "" {
		options = append(options, config.WithRegion(s.Region))
	}
	if s.profile != "" {
		options = append(options, config.WithSharedConfigProfile(s.profile))
	}
	switch {
	case s.id != "":
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(s.id, s.secret, s.token)))
	case s.fromEC2:
		options = append(options, config.WithCredentialsProvider(aws.NewCredentialsCache(ec2rolecreds.New())))
	}
	cfg, err := config.LoadDefaultConfig(context.Background(), options...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("configuring AWS: %w", err)
	}
	if s.role != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(s.sts(cfg), s.role, func(o *stscreds.AssumeRoleOptions) {
			if s.externalID != "" {
				o.ExternalID = aws.String(s.externalID)
			}
		}))
	}
	return cfg, nil
}

// sts is who lets a role be assumed. Its global endpoint lies in us-east-1.
func (s Settings) sts(cfg aws.Config) *sts.Client {
	return sts.NewFromConfig(cfg, func(o *sts.Options) {
		if o.Region == "" {
			o.Region = "us-east-1"
		}
		if s.STSEndpoint != "" {
			o.BaseEndpoint = aws.String(s.STSEndpoint)
		}
	})
}
