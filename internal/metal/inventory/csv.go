package inventory

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// csvColumns are the columns of a hardware CSV, in the order in which they are written.
var csvColumns = []string{
	"hostname", "bmc_ip", "bmc_username", "bmc_password", "mac", "ip_address", "netmask", "gateway", "nameservers", "labels", "disk", "vlan_id",
}

// optionalColumns may be missing, together with those of the BMC.
var optionalColumns = []string{"bmc_ip", "bmc_username", "bmc_password", "vlan_id"}

// requiredCells may not be empty.
var requiredCells = []string{"hostname", "mac", "ip_address", "netmask", "gateway", "nameservers", "disk"}

func readCSV(data []byte) ([]Row, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	r.TrimLeadingSpace = true
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the CSV: %w", err)
	}
	column, err := columnsOf(header)
	if err != nil {
		return nil, err
	}
	r.FieldsPerRecord = len(header)
	var rows []Row
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		line, _ := r.FieldPos(0)
		if errors.Is(err, csv.ErrFieldCount) {
			rows = append(rows, Row{Where: fmt.Sprintf("line %d", line), Problems: []string{fmt.Sprintf("has %d columns, want %d", len(record), len(header))}})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the CSV: %w", err)
		}
		rows = append(rows, readRecord(line, func(name string) string {
			if i, ok := column[name]; ok {
				return strings.TrimSpace(record[i])
			}
			return ""
		}))
	}
}

// columnsOf finds the columns by their names.
func columnsOf(header []string) (map[string]int, error) {
	column := map[string]int{}
	for i, name := range header {
		name = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(csvColumns, name) {
			return nil, fmt.Errorf("unknown column %.80q in the CSV: the columns are %s", name, strings.Join(csvColumns, ","))
		}
		if _, twice := column[name]; twice {
			return nil, fmt.Errorf("the CSV has the column %q twice", name)
		}
		column[name] = i
	}
	for _, name := range csvColumns {
		if _, ok := column[name]; !ok && !slices.Contains(optionalColumns, name) {
			return nil, fmt.Errorf("the CSV lacks the column %q: the columns are %s", name, strings.Join(csvColumns, ","))
		}
	}
	return column, nil
}

// recordReader reads one record and collects its problems.
type recordReader struct {
	cell func(string) string
	row  *Row
}

func readRecord(line int, cell func(string) string) Row {
	row := Row{Where: fmt.Sprintf("line %d", line)}
	r := &recordReader{cell: cell, row: &row}
	for _, name := range requiredCells {
		if cell(name) == "" {
			r.problem("%s is empty", name)
		}
	}
	row.Name, row.Disk = cell("hostname"), cell("disk")
	row.NICs = []NIC{r.nic()}
	r.bmc()
	labels, err := ParseLabels(split(cell("labels")))
	if err != nil {
		r.problem("%v", err)
	}
	row.Labels = labels
	return row
}

func (r *recordReader) problem(format string, args ...any) {
	r.row.Problems = append(r.row.Problems, fmt.Sprintf(format, args...))
}

func (r *recordReader) nic() NIC {
	n := NIC{MAC: r.cell("mac"), Gateway: r.address("gateway", r.cell("gateway"))}
	if ip := r.address("ip_address", r.cell("ip_address")); ip.IsValid() {
		ones, err := maskLength(r.cell("netmask"))
		if err != nil && r.cell("netmask") != "" {
			r.problem("%v", err)
		}
		n.Address = netip.PrefixFrom(ip, ones)
	}
	for _, text := range split(r.cell("nameservers")) {
		if ip := r.address("nameservers", text); ip.IsValid() {
			n.Nameservers = append(n.Nameservers, ip)
		}
	}
	if text := r.cell("vlan_id"); text != "" {
		id, err := strconv.Atoi(text)
		if err != nil {
			r.problem("vlan_id %.80q is not a number", text)
		}
		n.VLAN = id
	}
	return n
}

func (r *recordReader) address(name, text string) netip.Addr {
	if text == "" {
		return netip.Addr{}
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		r.problem("%s %.80q is not an address", name, text)
	}
	return ip
}

// bmc reads the columns of the management controller: all or none. An exported file has no
// passwords, and metal decides whether it knows them.
func (r *recordReader) bmc() {
	ip, user, password := r.cell("bmc_ip"), r.cell("bmc_username"), r.cell("bmc_password")
	if ip == "" && user == "" && password == "" {
		return
	}
	if ip == "" || user == "" {
		r.problem("bmc_ip, bmc_username and bmc_password must be set together")
	}
	r.row.BMC = &BMC{Address: r.address("bmc_ip", ip), User: user}
	r.row.Secrets.BMCPassword = password
}

// maskLength returns the length of a netmask such as 255.255.255.0.
func maskLength(text string) (int, error) {
	ip, err := netip.ParseAddr(text)
	if err != nil || !ip.Is4() {
		return 0, fmt.Errorf("netmask %.80q is not a mask such as 255.255.255.0", text)
	}
	raw := ip.As4()
	mask := uint32(raw[0])<<24 | uint32(raw[1])<<16 | uint32(raw[2])<<8 | uint32(raw[3])
	ones := bits.LeadingZeros32(^mask)
	if mask != ^uint32(0)<<(32-ones) {
		return 0, fmt.Errorf("netmask %q has gaps", text)
	}
	return ones, nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == '|' })
}

// WriteCSV writes servers as a hardware CSV. Passwords are left out: nobody can read them.
func WriteCSV(w io.Writer, servers []Server) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvColumns); err != nil {
		return err
	}
	for _, s := range servers {
		if err := out.Write(s.record()); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (s *Server) record() []string {
	cells := map[string]string{"hostname": s.Name, "disk": s.Disk}
	if s.BMC != nil {
		cells["bmc_ip"], cells["bmc_username"] = s.BMC.Address.String(), s.BMC.User
	}
	address, gateway := s.Address()
	cells["mac"] = s.Facts.MAC
	if len(s.NICs) > 0 {
		n := s.NICs[0]
		if n.Address.IsValid() {
			address, gateway = n.Address, n.Gateway
		}
		if n.MAC != "" {
			cells["mac"] = n.MAC
		}
		if n.VLAN != 0 {
			cells["vlan_id"] = strconv.Itoa(n.VLAN)
		}
		var names []string
		for _, ip := range n.Nameservers {
			names = append(names, ip.String())
		}
		cells["nameservers"] = strings.Join(names, "|")
	}
	if address.IsValid() {
		cells["ip_address"], cells["netmask"] = address.Addr().String(), net.IP(net.CIDRMask(address.Bits(), address.Addr().BitLen())).String()
	}
	if gateway.IsValid() {
		cells["gateway"] = gateway.String()
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		labels = append(labels, key+"="+s.Labels[key])
	}
	cells["labels"] = strings.Join(labels, "|")
	record := make([]string, len(csvColumns))
	for i, name := range csvColumns {
		record[i] = cells[name]
	}
	return record
}
