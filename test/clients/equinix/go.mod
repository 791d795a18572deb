module github.com/drover-dev/drover/test/clients/equinix

go 1.26

require github.com/equinix/equinix-sdk-go v0.42.0
