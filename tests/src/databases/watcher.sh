# Starts a database server in $1 with the rest of the words, obeys the lines that come in, and when no more can come,
# because the test ended, panicked or was killed, ends the server and deletes the directory.
exec 2>/dev/null
directory=$1
shift
start() {
    "$@" </dev/null >>"$directory/log" 2>&1 &
    server=$!
}
start "$@"
while read -r word; do
    case $word in
    kill) kill -KILL "$server"; wait "$server" 2>/dev/null ;;
    start) start "$@" ;;
    freeze) kill -STOP "$server" ;;
    thaw) kill -CONT "$server" ;;
    esac
    echo "$word"
done
kill -KILL "$server" 2>/dev/null
wait "$server" 2>/dev/null
rm -rf "$directory"
