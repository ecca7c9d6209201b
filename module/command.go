package module

import (
	"encoding/json"
	"fmt"
	"io"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// maxAdminAnswer bounds an answer of the admin API, in bytes.
const maxAdminAnswer = 64 << 20

// adminClient asks the admin API of a running Caddy.
type adminClient struct {
	address, config, adapter *string
	json                     *bool // print answers as they are
}

// newAdminClient adds the flags that say where the admin API is, which are
// those of Caddy's own commands, and how to print what it answers.
func newAdminClient(cmd *cobra.Command) adminClient {
	flags := cmd.Flags()
	return adminClient{
		address: flags.String("address", "", "The address to use to reach the admin API endpoint, if not the default"),
		config:  flags.StringP("config", "c", "", "Configuration file to use to parse the admin address, if --address is not used"),
		adapter: flags.StringP("adapter", "a", "", "Name of config adapter to apply (when --config is used)"),
		json:    flags.Bool("json", false, "Print the JSON answer of the admin API"),
	}
}

// show asks for something and shows the answer: as it is, or by calling present
// when it has been decoded.
func (c adminClient) show(out io.Writer, method, uri string, body io.Reader, answer any, present func() error) error {
	address, err := caddycmd.DetermineAdminAPIAddress(*c.address, nil, *c.config, *c.adapter)
	if err != nil {
		return fmt.Errorf("determining admin API address: %w", err)
	}
	response, err := caddycmd.AdminAPIRequest(address, method, uri, nil, body)
	if err != nil {
		return fmt.Errorf("asking the admin API at %s: %w", address, err)
	}
	defer response.Body.Close()
	text := io.LimitReader(response.Body, maxAdminAnswer)
	if *c.json {
		_, err := io.Copy(out, text)
		return err
	}
	if err := json.NewDecoder(text).Decode(answer); err != nil {
		return fmt.Errorf("reading the admin API's answer: %w", err)
	}
	return present()
}
