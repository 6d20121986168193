# Makes the data of a database server in the directory $1 with the words of $2, starts the server with the rest, obeys the lines
# that come in, and when no more can come, because the test ended, panicked or was killed, ends the server and deletes all.
exec 2>/dev/null
directory=$1
install=$2
shift 2
# A member that has made its cluster joins it when it starts again.
again=()
for word in "$@"; do
    [ "$word" = --wsrep-new-cluster ] || again+=("$word")
done
start() {
    "$@" </dev/null >>"$directory/log" 2>&1 &
    server=$!
}
if $install </dev/null >"$directory/log" 2>&1; then
    echo made
    start "$@"
    while read -r word more; do
        case $word in
        kill) kill -KILL "$server"; wait "$server" ;;
        stop)
            kill -TERM "$server"
            # One that waits for its cluster while it stops would wait for ever.
            (for ((n = 0; n < 60; n++)); do sleep 1; done; kill -KILL "$server") </dev/null >/dev/null &
            guard=$!
            wait "$server"
            kill "$guard"
            ;;
        # With further options, for this time.
        start) start "${again[@]}" $more ;;
        # It does something and ends by itself; what it said is kept.
        run) "${again[@]}" $more </dev/null >"$directory/said" 2>&1 ;;
        pid) word=$server ;;
        freeze)
            kill -STOP "$server"
            while grep -qv ') T ' "/proc/$server/task/"*/stat; do sleep 0.01; done
            ;;
        thaw) kill -CONT "$server" ;;
        esac
        echo "$word"
    done
    kill -KILL "$server"
    wait "$server"
else
    echo $(tail -40 "$directory/log")
fi
umount -l "$directory/disk"
rm -rf --one-file-system "$directory"
