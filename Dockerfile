# SPDX-License-Identifier: Apache-2.0
#
# docker build --build-arg VERSION="$(git describe --tags --always)" --build-arg DATE="$(git log -1 --format=%cI)" -t rpk-nessie .
# docker run -v ./pipeline.yaml:/etc/rpk-nessie/config.yaml:ro -v progress:/var/lib/rpk-nessie -p 4195:4195 rpk-nessie
FROM golang:1.26 AS build
ARG VERSION=unknown
ARG DATE=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
      -ldflags "-s -w -buildid= -X main.version=$VERSION -X main.dateBuilt=$DATE" -o /out/rpk-nessie ./cmd/rpk-nessie && \
    mkdir -p /out/var/lib/rpk-nessie

# No shell, no package manager; certificates and time zones are there. User 65532 is "nonroot".
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/rpk-nessie /usr/bin/rpk-nessie
COPY --from=build --chown=65532:65532 /out/var/lib/rpk-nessie /var/lib/rpk-nessie
USER 65532:65532
WORKDIR /var/lib/rpk-nessie
VOLUME /var/lib/rpk-nessie
EXPOSE 4195
ENTRYPOINT ["/usr/bin/rpk-nessie"]
CMD ["run", "/etc/rpk-nessie/config.yaml"]
