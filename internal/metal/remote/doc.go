// Package remote connects to servers with SSH, runs commands there and sends files. It pins host
// keys, goes through bastions, and bounds how long everything takes and how much it reads. It knows
// nothing about machines. Start with Dial.
package remote
