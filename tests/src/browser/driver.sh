# Starts Chromium's driver with its files in $1. When nothing more can come in, because the test ended, panicked or was killed,
# it ends the driver and its browser and deletes all.
exec 2>/dev/null
directory=$1
start() {
    chromedriver --port=0 </dev/null >"$directory/driver.log" &
    driver=$!
}
start
# It takes a port that is free at one address, and ends where the same port is taken at the other one.
until grep -q "started successfully on port" "$directory/driver.log"; do
    kill -0 "$driver" || start
    read -r -t 0.1 _
    [ $? -gt 128 ] || break
done
read -r _
pkill -KILL -P "$driver"
kill -KILL "$driver"
wait "$driver"
rm -rf --one-file-system "$directory"
