package redisclient

import (
	"errors"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// refusal says what a server's error means.
func (s server) refusal(err error) string {
	for _, known := range []struct {
		prefix, words string
	}{
		{"WRONGPASS", "the server does not know this user with this password (WRONGPASS)"},
		{"invalid password", "the server does not know this user with this password (invalid password)"},
		{"NOAUTH", "the server wants a password and was given none (NOAUTH)"},
		{"AUTH", "the server has no password set, and the client gives one"},
		{"Client sent AUTH", "the server has no password set, and the client gives one"},
		{"DB index", "the server has no database of this number (DB index is out of range)"},
		{"invalid DB index", "the server has no database of this number (invalid DB index)"},
		{"SELECT is not allowed", "the server belongs to a Cluster, which has only database 0"},
		{"This instance has cluster support disabled", "the server belongs to no Cluster; want New"},
		{"unknown command 'sentinel'", "what answers is a server, not a Sentinel"},
		{"DENIED", "the server is in protected mode and takes local clients only (DENIED)"},
		{"LOADING", "the server is still loading its data (LOADING)"},
		{"MASTERDOWN", "the server is a replica that has lost its master (MASTERDOWN)"},
		{"READONLY", "the server is a replica and cannot count; connect to its master (READONLY)"},
		{"max number of clients", "the server has all the connections it allows (max number of clients)"},
		{"OOM", "the server's memory is full: maxmemory is reached (OOM)"},
		{"MISCONF", "the server refuses writes, since it cannot save its data (MISCONF)"},
		{"NOREPLICAS", "the server refuses writes, since too few replicas follow it (NOREPLICAS)"},
		{"CLUSTERDOWN", "the Cluster does not serve all slots (CLUSTERDOWN)"},
		{"TRYAGAIN", "a slot is being moved to another node (TRYAGAIN)"},
		{"BUSY", "the server is busy with a script that does not end (BUSY)"},
		{"NOPERM", "this user " + denied(err)},
		{scriptDenied, "this user " + denied(err)},
		{"MOVED", "the server belongs to a Cluster, and the key to another node (MOVED)"},
		{"ASK", "the server belongs to a Cluster, and the key to another node (ASK)"},
	} {
		if redis.HasErrorPrefix(err, known.prefix) {
			return known.words
		}
	}
	if errors.Is(err, redis.Nil) {
		return "no master of this name is known there"
	}
	reply, _ := errors.AsType[redis.Error](err)
	text := strings.Join(strings.Fields(reply.Error()), " ")
	for _, secret := range s.secrets {
		if secret != "" && strings.Contains(strings.ToLower(text), strings.ToLower(secret)) {
			code, _, _ := strings.Cut(text, " ")
			if code != strings.ToUpper(code) || strings.Contains(code, strings.ToUpper(secret)) {
				code = "an error"
			}
			return "the server answers " + code
		}
	}
	return "the server answers: " + text
}

// scriptDenied begins the answer to a script with a command that the user may not run.
const scriptDenied = "The user executing the script"

// mayNot reports whether a server answers that the user may not do that.
func mayNot(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, scriptDenied)
}

// denied says what a user may not do, without the user's name, which is in the server's answer.
func denied(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, " key"):
		return "may not use keys ratelimit:* (NOPERM)"
	default:
		if command := deniedCommand.FindStringSubmatch(text); command != nil {
			return "may not run " + command[1] + " (NOPERM)"
		}
		return "may not run one of the commands that the script has (NOPERM)"
	}
}

// deniedCommand finds a name between quotes. The user's name, without spaces, comes before it.
var deniedCommand = regexp.MustCompile(`'([a-z|_-]+)' command`)
