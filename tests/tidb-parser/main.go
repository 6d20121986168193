// Asks TiDB's own parser which statements it reads. Standard input is a JSON array of statements. Standard output is one of the same
// length: null for a statement that is read, else the parser's complaint.
package main

import (
	"encoding/json"
	"log"
	"os"

	"github.com/pingcap/tidb/pkg/parser"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver"
)

func main() {
	var statements []string
	if err := json.NewDecoder(os.Stdin).Decode(&statements); err != nil {
		log.Fatalf("standard input is no JSON array of statements: %v", err)
	}
	complaints := make([]*string, len(statements))
	reader := parser.New()
	for i, statement := range statements {
		if _, _, err := reader.ParseSQL(statement); err != nil {
			complaint := err.Error()
			complaints[i] = &complaint
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(complaints); err != nil {
		log.Fatal(err)
	}
}
