module github.com/drover-dev/drover/test/clients/packngo

go 1.26

require github.com/packethost/packngo v0.31.0
