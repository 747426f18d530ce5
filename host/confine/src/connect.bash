# Connects standard input and output to HOST PORT through the proxy of the command.
host=$1 port=$2
case $host in *:*) host="[$host]" ;; esac
exec 3<>/dev/tcp/127.0.0.1/3128 || exit 1
printf 'CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n' "$host" "$port" "$host" "$port" >&3
# `read` takes no more bytes of a socket than the line.
IFS= read -r -u 3 status
while IFS= read -r -u 3 line && [ -n "${line%$'\r'}" ]; do :; done
case $status in
  'HTTP/1.1 200'*) ;;
  *) IFS= read -r -u 3 line; echo "$line" >&2; exit 1 ;;
esac
cat <&3 &
cat >&3
kill $! 2>/dev/null
