# The example app, static and alone in its image. Its settings come from the environment: run it with -h.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /example_app ./example_app

FROM scratch
# For providers and for Redis by TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /example_app /example_app
USER 65532:65532
# The app does not start with its demo keys on an address that others can reach: set API_KEYS.
ENV LISTEN_ADDR=:8080
EXPOSE 8080
ENTRYPOINT ["/example_app"]
