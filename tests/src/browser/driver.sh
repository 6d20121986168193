# Starts Chromium's driver with its files in $1. When nothing more can come in, because the test ended, panicked or was killed,
# it ends the driver and its browser and deletes all.
exec 2>/dev/null
directory=$1
chromedriver --port=0 </dev/null >"$directory/driver.log" &
driver=$!
read -r _
pkill -KILL -P "$driver"
kill -KILL "$driver"
wait "$driver"
rm -rf --one-file-system "$directory"
