# Prints the fare in cents: fare.sh ADULTS CHILDREN CARS
ADULT=450
CHILD=255
CAR=1800
echo $(($1 * ADULT + $2 * CHILD + $3 * CAR))
