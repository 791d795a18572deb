module github.com/drover-dev/drover/test/clients/packngo2018

go 1.26.0

require github.com/packethost/packngo v0.1.1-0.20180711074735-b9cb5096f54c

require golang.org/x/crypto v0.58.0 // indirect
