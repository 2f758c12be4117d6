# The command line, with everything in it: docker build -t kvssd . && docker run --rm kvssd bench --scale 1/256
# An image of a drive lives in a volume: docker run --rm -v "$PWD:/drives" -p 4420:4420 kvssd serve /drives/drive.kv --listen 0.0.0.0:4420 --insecure
FROM rust:1.95-slim-bookworm AS build
WORKDIR /kvssd
COPY . .
RUN cargo build --release --locked -p kvssd --features campaigns,papers,tls

FROM debian:bookworm-slim
COPY --from=build /kvssd/target/release/kvssd /usr/local/bin/kvssd
WORKDIR /drives
ENTRYPOINT ["kvssd"]
CMD ["--help"]
